"""Files that PyTorch 2.13 wrote, compressed, for tests that run without it."""

import base64
import zlib


def _bytes(text):
    return zlib.decompress(base64.b85decode("".join(text.split())))


# a zip archive of a dict with a state dict, views, numbers and constants
ZIP = _bytes(
    """
    c-
    o~`&u<$=6dv1&?JOa`C?pLK%5MXy<Mq$DN#n3>x6p+)*)(7Z#cb?Jys+{5*<*)RsuZbmnhFkW4+t)Z3qqU`f&+(2@DFh
    3)&n38NL)FDnVpTZyHR42OtL%K_<isD-prdXn>i)Wg-
    |$*c8vivgtS_*tT*vQNh4ac`jH_^edvm7tov^OisZW~VAU*P1AN7zX&AUjbhA<yF4ao7hD&GlA`!s<k_v%HK1gHNu)b0
    z&{ZTRrHB?9L^tX}p@x?lx=|`rwVJky39bpyy+;VamAY9gG~)sUBawWFCau#*Z3RP!Lj>6{HL}2eDL^>yqcJh)$p`3Mt
    TsSUx(GZpuOP**_&1=JPQDFz_;#5I?IX~y!oa5WFn9}wRCpv$mkKTES{;s+DQP)W=1E0(v@9ro0*_hAS}?5mS}?*B9Va
    lV!s88VjhZ@MtHTpl;mL?ALmb9vh9H5bxSYTSoKONx&eJ^0GX$Ph;kj*4*$#hxo<;>)@B$-
    zk%vYI(EH2Y&{tUI04sD{@iBsvJUmKZLWLN%^x>*mEQ6?otWqm<6Cj@V(;t8S77|v(vZ1ZiA-
    Q?+{A?F*lv|LpqRX1G3~5el?|@`&ftYS@LdL2#0h3gdk3g1bqRLOP+Z5L`P2jW&GuAFO#5CkOG(bXt*&WKL-
    2}p7g<PxRQk(fzi#Z7r->EY;^I3K~$C+hYbwjUE%>tY!@R|y*TV<D6Hn?C%Ec3DiP^@k);ig{1@P_><e-z-
    &cBfrz!6g;utYxa}*D=i7p$qgu0G03fLJKaduxLdU&B}-HmTNK3n5$I-
    f9&q+x2>{Lkmn2fj$PIjc6*nX_1+D*x|8$$%{qaC3LiA0b4n;Y|IdX7KT(<Nn%mP0hEcBV1<_@*wyKdr6W8kWjLXuL#}
    W=SL?+^gzkj>Q%3#;tB1TbWM})o21<lY`Dyz6cWGQhN9qA+!kXwU4S(p3w6)@;ng{5l*o6OvfSihkYVqm7Bb^5_^)=a^
    DHT0nwmn%=iWa-oq1R%7YqiJX9H@((pnUc%LzWHRp`U|kXlB8RSC`&PPaQ?3-
    ?|qAR0R8m^BMNumop$raWoZ%}zJ4~`Yrr%yJ;Qf?zdJ%d80nyA+^r`eOOgMr=YEbcefr0_>CXMvha@*sQkG_p(tLDmZ8
    3g?wzdwzpE^4K_S!QQ&98IO&imhwrrIjn9+Ww(jD*0LfBkZ0v2*=nD86Gr)&kUVO{WfYU1M)M1-
    &Fo(E|z*<LSv%I+Mtzv*{%Lil;?UjAdh)L^7G3%p^0Zw3y9IrkKj_dw#hYp*kX#N*@#3*6H-
    |fnCbI?{QwV(}0Iv$lflrm-Bm*I8AiamE^87$u8&i=5ZR~pexT%H`;B$Ubxe}`dskOx{=2_y;!FMxv?jL9<1oaI^DvJ{
    oIR<d$G>*@5V+#9&Eykb)H=}_MR7;^kSVS&W#-kd$1`l)_G?7-Ss-Kd-
    RI4mB-w~J*dMWn^S_p@$DlSIJwiRp7~!tpMUJ(GsUt063};c0Ds%)4suMd70+Y;13PO8cm
    """
)

# the same in the format before zip archives, without unsigned integers
STREAM = _bytes(
    """
    c-
    nna*;3O`7|v2!jiR`VEAGXmmhQMw0YQyy!6i3Lr=*7_OlbNgr$wD%rZ<J^GkD>pz6CQrjgR1r7oL*@1gxByoaFrZ{_p?
    (<+P;Fiv9b`#IJ$nZ?pZ0mNfNKX8Rh1xZWoSLfv(!V>ouHNnFozY7iMf?`3~%i&C4ENUdU(Ymhp+!i@Aoos>N5Bk>@wA
    rjYnn9(yGm!e0NbeWy38bwr%=n>B0)T)T7kw#-
    HCdaQh6=Fj)SXi4FltuNF8Mi`QQW>`lsz4glAjkD6!>$smYEncD>bQoPC^e{MdrHYAiw(=Jl<H--yh12(74-
    ZELP^bY+)^{8AR3SBF)o-P%T<C{;G#^}PMOXJMg<4-BMdW~NhkB^-0*NJn@nYJ(9g}NH=wAIX^KO0s-
    Q}$w2s5<C9b3QlgVWtp*X6cuj3z%ZQ!_u6MiWct+I!cCX-;s%snB7(y3$;r%Xka81-qNx{Wic*v8p_wx8mhhVu=-
    eoc$4dbqHFi}8Q?GTB_Zkmr&wF}^6{yBtWB*D;{VT<Vp8^D4zP4cGUhxDis^oMWDH8@ITmc;G%raa+Tk{oL<{?)SI?nH
    MXeid@M3fFemTq#;H8tVrE4Or+JAU#=Q!D>AyoK7V{i)<-Pa<*J8VXL_>8A#80R@1xDKy@Wy_CG6>_-
    _)Vpc3X#c)I6UYN@Y`-0v<4hB2)N~D`dGn;@jgu-4lut4Mjh6g%3WShTKa5wSrN9Mk}Og83beD-
    {7cVe0yY`wK1V#(wE9F51xn6d3I3nBIwS`HdGC-e3aqTmNB&}p)qHrZj<-
    BXLWi{Qn_rZfSE9<*)XX&zG*>H^J{qhH^Q5aNAXs}JAOYG`2FlMmtwd3Aa$#z+)YiS+hp{Rgd}XOuSG%F+-
    fOXtr4~{Tai7jq8M5?N5nmdsIYVG_TsF60AHd-r2
    """
)

# a whole nn.Linear
MODULE = _bytes(
    """
    c-o~^&2Jk;6kpqk?QDYcQQ9;~8z6kyrFFdiirtT-
    805>MlDdFKNNBWPuf3~mcJp>;V~P|BRMNC34%~a?A3#E!dgTfy4oDo}!UZJ$0%m3tdv_hDq8({H-g&>@d%v0Y-
    t4xVm=J_?S{NB~!h)bUs&4FS>m7wC`Mn*p*~kc=hQ^n1mDm)Ox2*iG-SJG#&6|d$DUSGoKY@_@3StKk&mtCuIErBzRu2
    -7&@_F=dy1p%YD9Bfm^gsREK1VVzGn1v0?A|N*dvDNirCTGo?&)|91&7uAVjlV+rj%q5z^T#N>QgSMJhcFrhJOnG;M|4
    ^A|-BQH){=FpUy)R`)!Zk>dnjx+@EEOpZT<j2xF^4`KGPs@kThsl>1?SNzcFXpYu--
    %yDNbGa7G6If`$xkoyCdHD#=x8MSzXDqZ0#f3#ZrBglnl<voq;G#Yw#|SL(IES#zepViH_9X(BTd?Z8dgTaSZNY0EKSk
    X3x?Of;YX|T;T45`eZQ(t-WVm$e<OG0Sjldf!#_UvxVPP!N6%pS24Bk3~w_A`!=eR#b-
    RUb1Jz7V@x^3^ckmF&mpxKb!x4pw{SJ4G#GhE#DOf!suYj;qFS-
    Z9qAm%x79W9TTaNi(0W)6BT6gW&mmquZV*;nqnSXF2aI#A@m5?TlXhkGb<a|NxQY7T|0a_9z{XHb_YM8h4L)MH0AZmpy
    95$iD2b&j~<?~GPf=XBUj4!h;&Yy@VzCjmD(Zp+X1ac9Bp19+Er4NYWMQ;6r##fBV5Gjz@N$Z+vJIp($V+j1(s_TBH_K
    A|Pep6#*Sz9?KCbbFp2)UHDCKC33%YBrW4O&=H%3-QB0zdc~Z%%1TfmW7RBh~r+Q*))3AE-lz*qclFs_)#r00b70eD^5
    ei&lE5(Yz+jo?-
    R{tt=nwec%HZ?!!!snHKyV4)*nmk>PnueAtP*tZq@ZdvvK_e1bkh|JzY7vvc(ik<?h{PA=A%La5JnxYBp-mtzhlXA2(U
    -Z+`k0*d;e{X6)HO1_ssjLg!x+S@fTu^ge!e{#S+KumJhiUCl9Q1%9EhyBr&xW+VSU#S|)4Nh;JT#ZpzOS2qfkV!bStO
    OjNnSL>z1Mx|IQOSM9Ysl52~`#V{xBg<9BnAm~NV3*E~D35-JqwHV<E{2$YCxmf*9d#0HqUDg2yA#40og4KNY=rrcpI-
    ug1`Qac2dg*}qJJ_eM0zL64OU^8`)iadMY+KmnhkM3N(#}cjgo_@T@CL!Kt8?bw&i5<>Pd+vt__&!$UGhQ=g(9AOnLm@
    gDL;rzkMf@J}1rbKK4J*6?(n
    """
)

# [int32 [1, -2], complex64 [1+2j]] as a big-endian machine writes them
BIG_ENDIAN = _bytes(
    """
    c-
    n=M&x_MQ6vt=M?QYHL{%{L|px~{Fbd$76+tVtFP$F0>LJ=gS$=D30Nhg_hcRdxB74}c?B6#=UMf@u~h*wX7!X89C3tMN
    }ElFmrPI$><c%S!P-
    ut%9+)@$D&NcAn_RIP==5gC#W=D>PM`+u%sa+mC_s7yx0!j`I*?rj>QtZdF6`}4B`>sV%5QmX9(qsZlrOpcDV-
    {)m5Rqnx+zjZW*_BLk9mpaSvee13uQM2uyeUz#{LloZbVycAct{FIjuZMmawraiSbh+>C_?UC>`<AUyWS=;C97?6-
    edK=d5t?^f8e9Ndwysq#V$;XsbtN|n~;)qUWDb};IGXikLS8b$yS>bQMr{F$%mg`4miv0QfegSXJOR0sWn1T%$ifP)Xp
    wBmYB!wa+*4wh-Le@7xYm;jcS%`e*OKK4}{xhitO%F6!QP?;$D_``~BosfqC54gr#jOy!FXsa*}0sZ+^V7kWqKW0Ni4?
    S?1I0-
    sAZ{t*4mN2~^~4_^TgJ#wF%)yP6)sv_^~~%x3Vy=9{&!tLTQRDs^3}7;3|)DZ19Es+v}<>+EUNE4rrCjGCdhOehs|ixo
    RRW4^C5`W0z$xe2`m7p_`NBJMg#(uDuoyqHJae3It?{zV5OF3KRm-
    $PLpA}h)vVUI;t6<JXh34294BN7o7MUuexrT<B$W#*T`wCMs^Wzp|=2jCA*n-5k
    """
)

# [a storage of int16 [1, 2]]
BARE_STORAGE = _bytes(
    """
    c-jl_W@cev;NW1u00Im`42ea_8JT6N`YDMeiFyUuIc`pT3{fbcfho3-K_h}4sG+zdzbG+1wU99x$VkrM3eLzcDhY-Nau
    qT~Fap&W6f#FJ1L@>~(n1z*rjkO|z(l<OZ+4C_{(N>9pacj9;B=EXgE`zydTIGZxrrt5WvNBQnfZBcPR3|XBMKOTEZ_e
    APBX}LjCd`VLbe?0+4#hq%=En6)VvZh?Kd+4Il#WW@Ff$_3MRY`5M;22J0PjDBsIS%CAG-
    S$(kH{VIU{7q$DR5<c3z;$C7M7TiEcrfsersB~|DfxH(x--
    ~dLTpFy_&zIARj&`JgtyteZrg#bL>De}KD7s&RD^U^~Jhrb+y5h4MAJztz!lnG1$Rf#1)m&9kLxH;*O=omv&b0Z5wOG{
    HjLkm+AGZSM2BQpbILo)+IAkW;)(%j6{)WXsdoJ?brbGB&!-Jt<?B_qhOaCai-9{~)PqvvCE-
    N+e097X38B;9B^4&4ysL@b4xa2Xl!<Q#N!kQ1UHiaC>z%z<YBbnVC~i4R4)7!w0p+C|rkoDTR=!vRSz4*w%Zj~t3-
    A!Y^w2`9jtjZFuZ%$RlII@!_a^NbLB2Q!2Q>H|x)vqJcg5{#7%qK6%<9-<Zi`>sKS
    """
)
